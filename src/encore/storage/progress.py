"""What a long reading says of itself."""

import time

TOLD = 60  # seconds between two lines


class Progress:
    """Counts what is read, and prints a line each minute."""

    def __init__(self, name: str, what: str = "rows") -> None:
        self._name, self._what, self._done = name, what, 0
        self._began = self._told = time.monotonic()

    def more(self, number: int = 1) -> None:
        """So many more were read."""
        self._done += number
        now = time.monotonic()
        if now - self._told > TOLD:
            self._told = now
            print(
                f"{self._name}: {self._done:,} {self._what}, {self._done / (now - self._began):,.0f} a second",
                flush=True,
            )
