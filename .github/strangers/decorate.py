"""A ConfigMap has a Secret of its own, with its data in capitals. It is let go when the Secret is gone."""

import base64
import json
import sys

request = json.load(sys.stdin)
name, data = request["object"]["metadata"]["name"], request["object"].get("data", {})
there = request["attachments"]["Secret.v1"]
secret = {
    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
    "data": {key: base64.b64encode(value.upper().encode()).decode() for key, value in data.items()},
}
print(json.dumps({
    "labels": {"kept": None if request["finalizing"] else "secret", "old": None},
    "annotations": {"secrets": str(len(there))},
    "attachments": [] if request["finalizing"] else [secret],
    "finalized": request["finalizing"] and not there,
}))
