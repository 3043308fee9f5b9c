"""What the locks of envs/ pin."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVS = ROOT / "envs"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def lock(*names: str) -> dict[str, str]:
    """Versions by package; a line that is not ``name==version`` with digests, or another lock, fails."""
    versions: dict[str, str] = {}
    for name in names:
        text = re.sub(r"^#.*\n", "", (ENVS / name).read_text(), flags=re.M).replace("\\\n", "")
        for line in text.splitlines():
            if other := re.fullmatch(r"--requirement (\w+\.txt)", line):
                versions |= lock(other[1])
                continue
            pinned = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)((?: +--hash=sha256:[0-9a-f]{64})+) *", line)
            assert pinned, line[:100]
            assert canonical(pinned[1]) not in versions, pinned[1]
            versions[canonical(pinned[1])] = pinned[2]
    return versions
