// A bar for each number, as long as the number is large, with the number behind it.
//   name    what the tables and the readout call it      tensor  (row, 1) or (row)
//   rows    labels of the bars                           column  what the numbers are, for the tables
//   told    (value) => how a number is written           space   pixels that the longest written number takes

function bars({ name, tensor, rows, column, room, told, space }) {
  const left = labelWidth(rows) + 4;
  const long = room - left - space;
  const largest = tensor.largest;
  const width = (value) => Math.max(1, (value / largest) * long);
  const parts = rows.map((label, r) => {
    const value = tensor.data[r];
    const y = 2 + r * 24;
    return (
      `<text class="row" x="${left - 6}" y="${y + 14}">${escape(label)}</text>` +
      `<rect class="plus" x="${left}" y="${y}" width="${width(value).toFixed(1)}" height="20" fill-opacity="0.62"/>` +
      `<text class="value start" x="${(left + width(value) + 6).toFixed(1)}" y="${y + 14}">${told(value)}</text>`
    );
  });
  drawn.push({ name, tensor, rows, columns: [column], largest, keys: rows.map(() => undefined), bars: true, left, top: 0, size: long, high: 24 });
  const high = 4 + rows.length * 24;
  return `<svg data-name="${name}" width="${room}" height="${high}" viewBox="0 0 ${room} ${high}" aria-hidden="true">${parts.join("")}<path class="outline" transform="translate(${left} 0)"/></svg>`;
}
