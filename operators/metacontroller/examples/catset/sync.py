"""Pods with numbers: the next one is made when all before it are Ready, and the last one goes first. The finalizer goes to 0."""

import json
import sys

request = json.load(sys.stdin)
catset = request["parent"]
name, spec = catset["metadata"]["name"], catset["spec"]
pods = request["children"]["Pod.v1"]


def ready(pod):
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def child(n):
    pod = {"apiVersion": "v1", "kind": "Pod", **json.loads(json.dumps(spec["template"]))}
    pod.setdefault("metadata", {})["name"] = f"{name}-{n}"
    return pod


wanted = 0 if request["finalizing"] else spec["replicas"]
there = 0
while f"{name}-{there}" in pods:
    there += 1
well = all(ready(pod) for pod in pods.values())
goal = there
if there < wanted and well:
    goal = there + 1
elif there > wanted and not any("deletionTimestamp" in pod["metadata"] for pod in pods.values()):
    goal = there - 1
print(json.dumps({
    "status": {"replicas": len(pods), "readyReplicas": sum(map(ready, pods.values()))},
    "children": [child(n) for n in range(goal)],
    "finalized": request["finalizing"] and not pods,
}))
