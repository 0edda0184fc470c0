"""The parts of the publish bench."""
