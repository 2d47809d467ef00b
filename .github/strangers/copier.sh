# An operator in shell: it copies the ConfigMaps with the label copy=me.
kubectl get configmaps -l copy=me -o name --watch | while read -r name; do
  name=${name#configmap/}
  kubectl get configmap "$name-copy" >/dev/null 2>&1 || kubectl create configmap "$name-copy"
done
