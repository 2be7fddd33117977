/** Ends the benchmark with a message for the caller instead of a stack. */
export class BenchEnd extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}
