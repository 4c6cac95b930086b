"""Programs for maintainers: they measure toolchains and build the package data of gpuwhy.knowledge."""
