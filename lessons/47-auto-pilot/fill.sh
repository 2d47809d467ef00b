# Fills the quota: writes a value of a megabyte again and again, until etcd takes no more. etcd keeps each one.
until head -c 1000000 /dev/zero | tr '\0' x |
  kubectl exec -i client -c writer -- etcdctl put filler 2>&1 | grep 'database space exceeded'
do
  echo 'one more megabyte'
done
