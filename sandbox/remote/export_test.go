package remote

import "time"

// SetPatience sets how long a process may take to acknowledge an order.
func (t *Taps) SetPatience(d time.Duration) { t.patience = d }
