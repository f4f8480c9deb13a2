"""All benchmarks, one after the other: `make bench`."""

from benchmarks import family, layers, sentence, slider

layers.main()
family.main([])
slider.main()
sentence.main()
