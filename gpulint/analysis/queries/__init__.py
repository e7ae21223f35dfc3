"""What rules ask: one file and one public function each."""
