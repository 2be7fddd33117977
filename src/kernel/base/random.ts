/** The source of randomness: numbers in [0, 1). It is injected, so that tests are deterministic. */
export interface Random {
  next(): number;
}
