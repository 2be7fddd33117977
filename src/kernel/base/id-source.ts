/** Where fresh ids come from: each a string never given before, of letters, digits, `-` and `_`. */
export interface IdSource {
  next(): string;
}
