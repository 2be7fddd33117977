const padding = "x".repeat(120);

/** What the model says next. */
export type LoopStep =
  | { readonly callsTool: true; readonly callId: string; readonly toolName: string; readonly json: string }
  | { readonly callsTool: false; readonly text: string };

/**
 * A model without latency that makes one tool call per turn, for the given number of turns, and then answers `done`. The
 * next step follows from the id of the last result, so that a loop which loses a result is detected. The harness of the
 * peers does the same.
 */
export class LoopScript {
  readonly turns: number;
  modelCalls = 0;
  toolCalls = 0;
  mostMessages = 0;
  /** When each tool was called, where somebody wants to know. Milliseconds. */
  marks: number[] | undefined;

  constructor(turns: number) {
    this.turns = turns;
  }

  next(lastCallId: string | null, messages: number): LoopStep {
    this.modelCalls++;
    if (messages > this.mostMessages) this.mostMessages = messages;
    const turn = lastCallId === null ? 0 : Number(lastCallId.slice("call_".length)) + 1;
    return turn < this.turns
      ? { callsTool: true, callId: `call_${turn}`, toolName: "lookup", json: `{"i":${turn}}` }
      : { callsTool: false, text: "done" };
  }

  /** About 200 bytes. */
  tool(input: unknown): string {
    this.toolCalls++;
    this.marks?.push(performance.now());
    const { i } = input as { readonly i: number };
    return `{"i":${i},"status":"ok","id":"item-${i}","data":"${padding}","score":0.5,"tags":["a","b","c"]}`;
  }

  /** Before each run. */
  reset(): void {
    this.modelCalls = 0;
    this.toolCalls = 0;
    this.mostMessages = 0;
    this.marks = this.turns >= 100 ? [] : undefined;
  }

  /** After each. */
  check(): void {
    const { turns, modelCalls, toolCalls, mostMessages } = this;
    if (modelCalls === turns + 1 && toolCalls === turns && mostMessages >= 2 * turns) return;
    throw new Error(`${turns} turns took ${modelCalls} model calls and ${toolCalls} tool calls`);
  }
}
