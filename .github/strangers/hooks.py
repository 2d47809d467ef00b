"""Answers webhooks of metacontroller with a program, which reads the request and prints the answer. Each request and answer is a line
of a file, as JSON. Usage: hooks.py PROGRAM FILE. The first line that it prints is its port on 127.0.0.1."""

import http.server
import json
import subprocess
import sys

program, log = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"]))
        answer = subprocess.run([sys.executable, program], input=request, capture_output=True, check=True).stdout
        with open(log, "a", encoding="utf-8") as lines:
            print(json.dumps({"request": json.loads(request), "answer": json.loads(answer)}), file=lines)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
