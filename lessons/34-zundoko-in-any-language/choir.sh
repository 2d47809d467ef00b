# A Choir is Pods with numbers: the next one is wanted when
# all before it are Ready, and the last one goes first.
# Each sings its word of the song. It needs grep and sort.
request=$(cat)
seen() { printf %s "$request" | grep -o "$1"; }
there=$(seen '"name":"choir-[0-9]*"' | sort -u | grep -c .)
ready=$(seen '"status":"True","type":"Ready"' | grep -c .)
wanted=$(seen '"singers":[0-9]*' | grep -o '[0-9]*$')
finalized=false
if [ "$1" = finalize ]; then
  wanted=0
  [ "$there" -gt 0 ] || finalized=true
fi

goal=$there
if [ "$there" -lt "$wanted" ] && [ "$ready" -eq "$there" ]; then
  goal=$((there + 1))
elif [ "$there" -gt "$wanted" ]; then
  goal=$((there - 1))
fi

children=
n=1
while [ $n -le "$goal" ]; do
  word=Zun
  [ $((n % 5)) -ne 0 ] || word=Doko
  children="$children${children:+,}$(cat <<EOT
{"apiVersion": "v1", "kind": "Pod",
 "metadata": {"name": "choir-$n", "labels": {"app": "choir"}},
 "spec": {"terminationGracePeriodSeconds": 0, "containers": [
  {"name": "voice", "image": "busybox",
   "command": ["sh", "-c", "echo $word; sleep infinity"]}]}}
EOT
)"
  n=$((n + 1))
done
echo "{\"status\": {\"singing\": $ready},
  \"children\": [$children], \"finalized\": $finalized}"
