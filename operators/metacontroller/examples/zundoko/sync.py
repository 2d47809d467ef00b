"""A Hikawa sings Zun and Doko until four Zun and a Doko come in a row, then Kiyoshi! SEED repeats a song."""

import hashlib
import json
import os
import re
import sys
from datetime import datetime, timezone

API = "zundokokiyoshi.kaitoy.github.com/v1beta1"
request = json.load(sys.stdin)
hikawa, name = request["parent"], request["parent"]["metadata"]["name"]
said = request["children"]["Zundoko." + API]
kiyoshied = bool(request["children"]["Kiyoshi." + API])
now = datetime.now(timezone.utc)


def child(kind, name, spec):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def word(n):
    seed = os.environ.get("SEED", "0")
    meta = hikawa["metadata"]
    singer = meta["uid"] if seed == "0" else meta["namespace"] + "/" + name
    return ["Zun", "Doko"][hashlib.sha256(f"{seed} {singer} {n}".encode()).digest()[0] & 1]


words = []
while f"{name}-zundoko-{len(words) + 1:03}" in said:
    words.append(said[f"{name}-zundoko-{len(words) + 1:03}"]["spec"]["say"])
sung = re.search("(^|D)ZZZZD", "".join(w[0] for w in words)) and len(words) >= hikawa["spec"].get("numZundokos", 0)
last = max((datetime.fromisoformat(z["spec"]["saidAt"].replace("Z", "+00:00")) for z in said.values()), default=None)
pause = hikawa["spec"]["intervalMillis"] / 1000 - (now - last).total_seconds() if last else 0
children = [child("Zundoko", key, z["spec"]) for key, z in said.items()]
answer = {"status": {"numZundokosSaid": len(said), "kiyoshied": kiyoshied}, "children": children}
if len(words) == len(said) and pause > 0 and not kiyoshied:  # a word that is missing in the middle is said at once
    answer["resyncAfterSeconds"] = pause
elif not sung:
    spec = {"say": word(len(words) + 1), "saidAt": now.isoformat(timespec="microseconds").replace("+00:00", "Z")}
    children.append(child("Zundoko", f"{name}-zundoko-{len(words) + 1:03}", spec))
if sung and (kiyoshied or pause <= 0):
    children.append(child("Kiyoshi", name + "-kiyoshi", {"say": "Kiyoshi!"}))
print(json.dumps(answer))
