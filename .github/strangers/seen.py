"""Prints what is in a cluster, as far as two programs can agree on it: no UIDs, times and hashes, nor what the API server adds.
With --requests, which fields the requests to a hook have. Usage: seen.py <objects.json, or seen.py --requests <FILE"""

import json
import re
import sys


def fields_of(value, path=""):
    """The paths of a request's fields, as far as the contract has them: not those within objects."""
    for key, below in value.items():
        at = f"{path}.{key}"
        yield at
        if key in ("children", "related", "attachments"):
            yield from (f"{at}.{kind}" for kind in below)


def described(obj):
    meta = obj["metadata"]
    if obj["kind"] == "ControllerRevision":  # its name is a hash
        return {"kind": obj["kind"]}
    of = {"kind": obj["kind"], "name": meta["name"], "deleted": "deletionTimestamp" in meta}
    for key in ("labels", "finalizers", "annotations"):
        of[key] = meta.get(key)
    (of["annotations"] or {}).pop("metacontroller.k8s.io/last-applied-configuration", None)  # only a three-way merge needs it
    of["annotations"] = of["annotations"] or None
    of["owners"] = [{k: v for k, v in owner.items() if k != "uid"} for owner in meta.get("ownerReferences", [])]
    if obj["kind"] == "Pod":
        of["images"] = [c["image"] for c in obj["spec"]["containers"]]
    else:
        of["spec"], of["status"], of["data"] = obj.get("spec"), obj.get("status"), obj.get("data")
    return of


if sys.argv[1:] == ["--requests"]:
    lines = {field for line in sys.stdin for field in fields_of(json.loads(line)["request"])}
else:
    lines = [re.sub("[0-9a-f]{40}", "HASH", json.dumps(described(o), sort_keys=True)) for o in json.load(sys.stdin)["items"]]
print("\n".join(sorted(lines)))
