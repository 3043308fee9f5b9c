"""A hub of models in a temporary folder: Hugging Face's two addresses, of what is there and of one file."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

COMMIT = "c0ffee" + "0" * 34
LARGE = ("model.safetensors", "pytorch_model.bin")  # what the hub publishes sha256 of


class Hub:
    """Serves the folder of one model under any id that is asked for but those of others; breaks as it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.commit = folder, COMMIT
        self.others: dict[str, Path] = {}  # the folders of further models, by id
        self.breaks: list[int] = []  # after how many bytes each of the next files ends, though it promised more
        self.requests: list[str] = []
        self.agents: set[str] = set()  # what programs said of themselves
        self.secrets: set[str | None] = set()  # and by what token they named their user
        self.refuses: int | None = None  # the status that answers every question of what there is
        self.damaged = False  # whether large files are other than the published ones
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        self.requests.append(path)
        self.agents.add(request.headers.get("User-Agent", ""))
        self.secrets.add(request.headers.get("Authorization"))
        if path.startswith("/api/models/"):
            revision = path.rsplit("/", 1)[1]
            known = revision in ("main", self.commit) and not path.startswith("/api/models/no-one/")
            if self.refuses or not known:
                request.send_error(self.refuses or 404)
                return
            self._give(request, json.dumps(self.listing(self._folder_of(path))).encode())
            return
        _, commit, name = path.rsplit("/", 2)
        file = self._folder_of(path) / name
        if commit != self.commit or not file.is_file():
            request.send_error(404)
            return
        body = file.read_bytes()
        self._give(request, bytes(len(body)) if self.damaged and name in LARGE else body, name in LARGE)

    def listing(self, folder: Path) -> dict[str, Any]:
        files = [{"rfilename": path.name, **self._said(path)} for path in sorted(folder.iterdir())]
        return {"id": "someone/bert", "sha": self.commit, "siblings": files, "tags": ["pytorch", "license:apache-2.0"]}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _folder_of(self, path: str) -> Path:
        return next((folder for name, folder in self.others.items() if f"/{name}/" in path), self.folder)

    def _said(self, path: Path) -> dict[str, Any]:
        body = path.read_bytes()
        large = {"lfs": {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}}
        return {"size": len(body), **(large if path.name in LARGE else {})}

    def _give(self, request: BaseHTTPRequestHandler, body: bytes, large: bool = False) -> None:
        asked = request.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        request.send_header("ETag", f'"{hashlib.md5(body).hexdigest()}"')
        request.send_header("Content-Length", str(len(body) - start))
        request.end_headers()
        end = start + self.breaks.pop(0) if large and self.breaks else None
        request.wfile.write(body[start:end])
