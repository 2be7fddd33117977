/** Where chance comes from: a number in [0, 1). */
export interface Random {
  next(): number;
}
