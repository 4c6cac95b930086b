"""The vocabulary of gpuwhy as immutable types: evidence, events, incidents, facts, findings, remedies; no logic of judging."""
