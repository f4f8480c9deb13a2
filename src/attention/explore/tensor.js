// Tensors as small as a page needs them.

// A shape and its numbers in row-major order. at(i) is the i-th slice.
export class Tensor {
  constructor(shape, data) {
    this.shape = shape;
    this.data = data;
  }

  at(i) {
    const size = this.shape.slice(1).reduce((a, b) => a * b, 1);
    return new Tensor(this.shape.slice(1), this.data.subarray(i * size, (i + 1) * size));
  }

  // The largest absolute value of its finite numbers.
  get largest() {
    const larger = (most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most);
    return this.data.reduce(larger, 0);
  }

  // The same shape, with a function of every number and its place in the data.
  map(entry) {
    return new Tensor(this.shape, this.data.map(entry));
  }
}

// (rows, columns) filled by a function of the place.
export function filled(rows, columns, entry) {
  const data = new Float64Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) data[r * columns + c] = entry(r, c);
  }
  return new Tensor([rows, columns], data);
}

export function stack(tensors) {
  const data = new Float64Array(tensors.length * tensors[0].data.length);
  tensors.forEach((tensor, i) => data.set(tensor.data, i * tensor.data.length));
  return new Tensor([tensors.length, ...tensors[0].shape], data);
}

// The index of the largest number, as torch's argmax of one axis.
export function argmax(data) {
  return data.indexOf(Math.max(...data));
}

export function sum(data) {
  return data.reduce((total, value) => total + value, 0);
}

export function range(length) {
  return Array.from({ length }, (_, i) => i);
}
