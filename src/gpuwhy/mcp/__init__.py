"""The verbs of gpuwhy for agents: an MCP server over standard input and output, or HTTP on this machine."""
