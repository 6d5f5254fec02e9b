"""An invented shop's data as of one snapshot, and the small generator that it comes from."""
