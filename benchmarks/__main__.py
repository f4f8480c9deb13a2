"""All benchmarks, one after the other: `make bench`."""

from benchmarks import family, layers, slider

layers.main()
family.main([])
slider.main()
