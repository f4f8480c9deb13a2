"""Both benchmarks, one after the other: `make bench`."""

from benchmarks import layers, slider

layers.main()
slider.main()
