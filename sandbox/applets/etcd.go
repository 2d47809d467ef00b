package applets

import "go.etcd.io/etcd/server/v3/storage/wal"

// walSegment is the size in bytes that etcd gives a new write-ahead log file. Its default of 64 MiB is allocated on
// disk at every start; a lab writes a few MiB in its life and copies whole data directories.
const walSegment = 4 << 20

func prepareEtcd() { wal.SegmentSizeBytes = walSegment }
