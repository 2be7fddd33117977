/** The source of new ids. Each id is unique and consists of letters, digits, `-` and `_`. */
export interface IdSource {
  next(): string;
}
