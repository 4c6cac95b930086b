"""model-mount-missing: the site's network share with the weights is not mounted on the node."""

from __future__ import annotations

from gpuwhy.causes import Case, cause, says
from gpuwhy.causes._registry import Judgement
from gpuwhy.model.fact import Unknown
from gpuwhy.model.finding import Certainty, Link, RuledOut, Verdict
from gpuwhy.model.remedy import Remedy

SHARE = "/mnt/models"


@cause(
    "model-mount-missing",
    family="Of this site",
    signs=[
        says(
            "not-there", SHARE, rf"(?P<path>{SHARE}/[\w./-]{{1,200}}).{{0,80}}(?:does not exist|not found|No such file)"
        )
    ],
    leads_to=("weights-missing-or-corrupt",),
)
def model_mount_missing(case: Case) -> Judgement:
    """The network share with the weights is not mounted on this node.

    How it shows itself
      `OSError: /mnt/models/NAME does not exist`, or a model that is looked for on the hub although it lies on the share.

    Why it happens
      The node was started without network, and the mount is not retried.

    How to be sure
      `findmnt /mnt/models` prints nothing.

    What helps
      `systemctl start mnt-models.mount`.

    What does not help
      Downloading the model: it would fill the root file system.
    """
    match = case.found("not-there")
    if match is None:
        return None
    seen = case.evidence(match, "a file of the share is not there")
    mounted = case.fact(f"mount.{SHARE}")
    if not isinstance(mounted, Unknown) and mounted.value is not None:
        return RuledOut("the share is mounted: the one file is missing", (seen, mounted.evidence))
    question = case.missing(f"mount.{SHARE}", "whether the share is mounted", f"findmnt {SHARE}")
    return Verdict(
        certainty=Certainty.LIKELY if question is None else Certainty.POSSIBLE,
        component="storage",
        title=f"{SHARE} is not mounted on this node",
        chain=(Link(f"{SHARE} is not mounted"), Link("The weights are not found", seen)),
        evidence=(seen,),
        explains=case.explains(match),
        missing=() if question is None else (question,),
        remedies=(
            Remedy(
                kind="service",
                name="mnt-models.mount",
                value="start",
                summary="Mount the share",
                commands=("systemctl start mnt-models.mount",),
                check=(f"findmnt {SHARE}",),
            ),
        ),
        strength=95,
    )
