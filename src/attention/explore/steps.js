// A drawing for each step of the slider, which Python painted for a page and for a phone.

import { explorer } from "./explorer.js";

const WIDE = 600; // pixels from which the wider one is legible

export default explorer({
  status({ alt }) {
    return alt;
  },

  draw({ wide, narrow }, _at, available) {
    return available < WIDE ? narrow : wide;
  },

  describe() {
    return "";
  },
});
