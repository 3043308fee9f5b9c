"""Progress of long jobs, in the log."""

import time

TOLD = 60  # seconds between two lines


class Progress:
    """Counts what is done, and prints a line each minute; of a known total also the time left, and a last line."""

    def __init__(self, name: str, what: str = "rows", total: int | None = None, done: int = 0) -> None:
        """``done`` of them are from an earlier attempt."""
        self._name, self._what, self._total, self._already, self._done = name, what, total, done, done
        self._began = self._told = time.monotonic()

    def more(self, number: int = 1) -> None:
        """So many more are done."""
        self.at(self._done + number)

    def at(self, done: int) -> None:
        """So many are done in all."""
        self._done, now = done, time.monotonic()
        if now - self._told > TOLD or done == self._total:
            self._told = now
            rate = (done - self._already) / max(now - self._began, 1e-9)
            of, left = "", ""
            if self._total:
                of, left = f" of {self._total:,}", f", {(self._total - done) / rate:,.0f} s left"
            print(f"{self._name}: {done:,}{of} {self._what}, {rate:,.0f} a second{left}", flush=True)
