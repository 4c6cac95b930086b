"""Memory: the GPU's, as weights, cache and work space use it up or another process holds it, and the host's."""
