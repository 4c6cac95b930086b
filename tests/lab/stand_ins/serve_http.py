"""STAND-IN for an inference server that answers: as `serve.py` up to the compiler, then HTTP on its port.

A completion asks for the sampler again, as every request with a temperature does.
"""

import argparse
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import serve


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        listed = {"data": [{"id": "lab-model"}]}
        self.answer(200 if self.path in ("/health", "/v1/models") else 404, listed)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/completions":
            self.answer(404, {})
            return
        is_sampled = asked["temperature"] > 0 and asked["top_p"] < 1 and asked["model"] == "lab-model"
        print("sampled" if is_sampled else "greedy", flush=True)
        self.answer(200, {"choices": [{"text": " world"}]})

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve_http(port):
    print("The server is fired up and ready to roll!", flush=True)
    HTTPServer(("127.0.0.1", port), Answers).serve_forever()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, required=True)
    port = arguments.parse_args().port
    sys.argv[1:] = []
    serve.serve = lambda: serve_http(port)
    serve.main()
