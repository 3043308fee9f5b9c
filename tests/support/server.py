"""A server of one file, which breaks as it is told."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(range(256)) * 4096  # 1 MiB


class Server:
    """Serves one file, and breaks as it is told."""

    def __init__(self):
        self.content, self.version = CONTENT, {"ETag": '"one"'}
        self.status = 200
        self.retry_after = []  # what refusals say, one each; after the last one all is well
        self.headers = None  # in place of the right length and range
        self.breaks = []  # after how many bytes each of the next answers ends, though it promised more
        self.requests = []  # the ranges that were asked for
        self.agents = set()  # who asked
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                owner.answer(self)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/data/file.bin"

    def answer(self, request):
        asked = request.headers.get("Range")
        self.requests.append(asked)
        self.agents.add(request.headers.get("User-Agent"))
        if self.status != 200:
            request.send_response(self.status)
            if self.retry_after:
                request.send_header("Retry-After", self.retry_after.pop(0))
                self.status = self.status if self.retry_after else 200
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        strong = [value for value in self.version.values() if not value.startswith("W/")]
        if request.headers.get("If-Range") not in (None, *strong):
            start = 0
        if start >= len(self.content):
            request.send_error(416)
            return
        body = self.content[start:]
        request.send_response(206 if start else 200)
        right = {"Content-Length": str(len(body))}
        if start:
            right["Content-Range"] = f"bytes {start}-{len(self.content) - 1}/{len(self.content)}"
        for name, value in (self.version | (right if self.headers is None else self.headers)).items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body[: self.breaks.pop(0)] if self.breaks else body)
