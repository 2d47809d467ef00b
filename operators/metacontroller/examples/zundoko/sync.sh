# A Hikawa sings Zun and Doko until four Zun and a Doko come in a row, then Kiyoshi! SEED repeats a song. It needs jq.
request=$(cat)
common='
  "zundokokiyoshi.kaitoy.github.com/v1beta1" as $api | .parent as $hikawa | $hikawa.metadata.name as $name
  | .children["Zundoko." + $api] as $said | (.children["Kiyoshi." + $api] | length > 0) as $kiyoshied
  | def key: "\($name)-zundoko-\(tostring | "00"[:3 - length] + .)";
  (first(range(1; 100000) | select($said[key] == null))) as $next'
next=$(printf '%s' "$request" | jq -r "$common | \$next")
singer=$(printf '%s' "$request" | jq -r '.parent.metadata | if (env.SEED // "0") == "0" then .uid else "\(.namespace)/\(.name)" end')
byte=$(printf '%s' "${SEED:-0} $singer $next" | sha256sum | cut -c 2)
case $byte in [02468ace]) word=Zun ;; *) word=Doko ;; esac

printf '%s' "$request" | jq --arg word "$word" "$common"'
  | def child($kind; $name; $spec): {apiVersion: $api, kind: $kind, metadata: {name: $name}, spec: $spec};
  def seconds: (sub("\\.[0-9]+Z$"; "Z") | fromdate) + ((capture("(?<f>\\.[0-9]+)Z$").f // ".0") | "0" + . | tonumber);
  def micro: (floor | todate | rtrimstr("Z")) + ((. - floor) * 1e6 | floor | tostring | ".\("000000"[length:] + .)Z");
  ([range(1; $next) | $said[key].spec.say[:1]] | add // "") as $words
  | (($words | test("(^|D)ZZZZD")) and ($words | length) >= ($hikawa.spec.numZundokos // 0)) as $sung
  | ([$said[].spec.saidAt | seconds] | max // 0) as $last
  | ($hikawa.spec.intervalMillis / 1000 - (now - $last)) as $pause
  | {
      status: {numZundokosSaid: ($said | length), kiyoshied: $kiyoshied},
      children: [$said | to_entries[] | child("Zundoko"; .key; .value.spec)]
    }
  | if ($words | length) == ($said | length) and $pause > 0 and ($kiyoshied | not) then .resyncAfterSeconds = $pause
    elif $sung | not then .children += [child("Zundoko"; ($next | key); {say: $word, saidAt: (now | micro)})]
    else . end
  | if $sung and ($kiyoshied or $pause <= 0) then .children += [child("Kiyoshi"; "\($name)-kiyoshi"; {say: "Kiyoshi!"})]
    else . end'
