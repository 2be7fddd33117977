import type { JsonValue } from "../../src/kernel/index.ts";

/** A command of a program. Every `name` is the name of a counter at an outside server, and occurs once in a program. */
export type Command =
  /** A step that counts. Its first `fails` requests fail, so that it is retried. Its value is 1. */
  | { readonly op: "count"; readonly name: string; readonly fails: number }
  /** A step that counts and then fails for good. */
  | { readonly op: "fatal"; readonly name: string }
  | { readonly op: "sleep"; readonly ms: number }
  /** Reads the time and random numbers, and publishes a value. */
  | { readonly op: "values" }
  /** Registers a compensation, which counts. */
  | { readonly op: "undo"; readonly name: string }
  | { readonly op: "parallel"; readonly branches: readonly Program[] }
  /** An item that fails has the value 100. */
  | { readonly op: "map"; readonly items: readonly Program[]; readonly concurrency: number }
  /** `body` wins against a branch that would wait for ever and then count. */
  | { readonly op: "race"; readonly body: Program; readonly never: Never; readonly name: string }
  /** `body` succeeds beside a branch that fails. */
  | { readonly op: "any"; readonly body: Program }
  | { readonly op: "attempt"; readonly body: Program; readonly otherwise: Program }
  | { readonly op: "timeout"; readonly body: Program }
  | { readonly op: "shield"; readonly body: Program }
  /** Waits for a signal that the harness or another run sends. */
  | {
      readonly op: "signal";
      readonly signal: string;
      readonly value: number;
      readonly from: "outside" | "run";
    }
  /** Creates a promise, which another run resolves or rejects. */
  | { readonly op: "promise"; readonly value: number; readonly rejects: boolean }
  /** Starts another run, does something else meanwhile, and waits for its end. */
  | { readonly op: "call"; readonly body: Program; readonly meanwhile: Program }
  /** Starts another run and does not wait for it. */
  | { readonly op: "send"; readonly body: Program; readonly delayMs: number }
  /**
   * Calls an object, whose handler adds `by` to the state of the key, executes `body`, and adds 1,000. `start` does
   * other work before it waits for the end, `send` does not wait for the end, and `read` only reads the state.
   */
  | {
      readonly op: "object";
      readonly key: string;
      readonly by: number;
      readonly how: "call" | "start" | "send" | "read";
      readonly body: Program;
      readonly meanwhile: Program;
    }
  /** Handles an update that the harness sends. An update whose `body` fails has the value 50. */
  | { readonly op: "update"; readonly name: string; readonly value: number; readonly body: Program }
  /** Starts the history anew with the rest of the program. Only the last command of a program. */
  | { readonly op: "again"; readonly rest: Program }
  /** Counts, and waits until the harness cancels the run. Only the last command of a program. */
  | { readonly op: "cancelled"; readonly name: string };

export type Program = readonly Command[];

/** What a branch waits for in vain. `object` is a call of an object that waits behind another call. */
type Never = "sleep" | "signal" | "promise" | "object";

/** An update that the harness sends, and what its reply must be. */
interface PredictedUpdate {
  readonly value: number;
  readonly reply: number | "failed";
}

/** The predicted end of a program. The value of a failed or cancelled program is not compared. */
export interface Predicted {
  readonly status: "completed" | "failed" | "cancelled";
  readonly value: number | null;
  /** Names of the counters that count. Each counts once. */
  readonly counted: readonly string[];
  /** The signals that the harness sends, with their values. */
  readonly signals: ReadonlyMap<string, number>;
  /** The updates that the harness sends, by name. */
  readonly updates: ReadonlyMap<string, PredictedUpdate>;
  /** The states of the keys of the object at the end. */
  readonly states: ReadonlyMap<string, number>;
}

/** Returns random numbers from 0 to below 1 that a seed decides (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = Math.imul(seed, 0x9e37_79b9) | 0;
  return () => {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What commands may do at the place where they are generated. */
interface Place {
  readonly depth: number;
  /** Whether the commands may end with a fault that they do not handle. */
  readonly mayFail: boolean;
  /** Whether the commands belong to the run that the harness starts. */
  readonly isRoot: boolean;
}

/** Generates programs. The same seed gives the same program. */
class Generator {
  readonly #random: () => number;
  readonly #seed: number;
  #names = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = seededRandom(seed);
  }

  /** The program of a run, with one of the last commands. */
  whole(place: Place): Program {
    const commands = this.#commands(place);
    const last = this.#below(6);
    if (last === 0 && place.isRoot) return [...commands, { op: "cancelled", name: this.#name() }];
    if (last === 1 && place.depth > 0)
      return [...commands, { op: "again", rest: this.#commands({ ...place, depth: place.depth - 1 }) }];
    return commands;
  }

  #commands(place: Place): Program {
    return Array.from({ length: 1 + this.#below(place.depth + 1) }, () => this.#command(place));
  }

  #command(place: Place): Command {
    const inner = { ...place, depth: place.depth - 1 };
    const safe = { ...inner, mayFail: false };
    const other = { ...inner, isRoot: false };
    const pick = this.#below(place.depth > 0 ? 21 : 7);
    switch (pick) {
      case 0:
        return { op: "sleep", ms: this.#below(15) };
      case 1:
        return { op: "values" };
      case 2:
        return { op: "undo", name: this.#name() };
      case 3:
        return this.#signal(place);
      case 4:
        return place.mayFail && this.#below(2) === 0
          ? { op: "fatal", name: this.#name() }
          : { op: "count", name: this.#name(), fails: 0 };
      case 5:
        return { op: "count", name: this.#name(), fails: this.#below(3) };
      case 6:
        return { op: "promise", value: 1 + this.#below(9), rejects: place.mayFail && this.#below(3) === 0 };
      case 7:
      case 8:
        return { op: "parallel", branches: this.#several(inner) };
      case 9:
        return {
          op: "map",
          items: this.#several({ ...inner, mayFail: true }),
          concurrency: 1 + this.#below(3),
        };
      case 10: {
        const never = (["sleep", "signal", "promise", "object"] as const)[this.#below(4)] ?? "sleep";
        return { op: "race", body: this.#commands(inner), never, name: this.#name() };
      }
      case 11:
        return { op: "any", body: this.#commands(safe) };
      case 12:
      case 13:
        return {
          op: "attempt",
          body: this.#commands({ ...inner, mayFail: true }),
          otherwise: this.#commands(inner),
        };
      case 14:
        return { op: "timeout", body: this.#commands(inner) };
      case 15:
        return { op: "shield", body: this.#commands(inner) };
      case 16:
        return { op: "call", body: this.whole(other), meanwhile: this.#commands(safe) };
      case 17:
      case 18:
        return this.#object(place);
      case 19:
        // Updates come from outside.
        return place.isRoot
          ? {
              op: "update",
              name: this.#name(),
              value: 1 + this.#below(9),
              body: this.#commands({ ...inner, mayFail: true }),
            }
          : this.#object(place);
      default:
        return { op: "send", body: this.whole({ ...other, mayFail: true }), delayMs: this.#below(20) };
    }
  }

  #signal({ isRoot }: Place): Command {
    const from = isRoot && this.#below(2) === 0 ? "outside" : "run";
    return { op: "signal", signal: this.#name(), value: 1 + this.#below(9), from };
  }

  /** A handler calls only keys of a smaller depth, so that no two calls wait for each other. */
  #object(place: Place): Command {
    const how = (["call", "start", "send", "read"] as const)[this.#below(4)] ?? "call";
    const inner = { ...place, depth: place.depth - 1, isRoot: false };
    return {
      op: "object",
      key: `p${this.#seed}.k${place.depth}.${this.#below(2)}`,
      by: 1 + this.#below(9),
      how,
      body: how === "read" ? [] : this.#commands({ ...inner, mayFail: place.mayFail || how === "send" }),
      meanwhile: how === "start" ? this.#commands({ ...inner, isRoot: place.isRoot, mayFail: false }) : [],
    };
  }

  #several(place: Place): readonly Program[] {
    return Array.from({ length: 1 + this.#below(3) }, () => this.#commands(place));
  }

  #name(): string {
    return `p${this.#seed}.c${this.#names++}`;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}

export function randomProgram(seed: number): Program {
  return new Generator(seed).whole({ depth: 3, mayFail: true, isRoot: true });
}

/** The stored form of a program, as the input of a run. */
export function programInput(program: Program): JsonValue {
  return program;
}

/** A fault that the commands do not handle. */
class Failed extends Error {}

/** Executes programs without effects. */
class Prediction {
  readonly counted: string[] = [];
  readonly signals = new Map<string, number>();
  readonly updates = new Map<string, PredictedUpdate>();
  readonly states = new Map<string, number>();

  /** Predicts a run. Its compensations follow if it does not complete. */
  run(program: Program): Pick<Predicted, "status" | "value"> {
    const undos: string[] = [];
    try {
      const value = this.#all(program, undos);
      if (value !== "cancelled") return { status: "completed", value };
      this.counted.push(...undos);
      return { status: "cancelled", value: null };
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      this.counted.push(...undos);
      return { status: "failed", value: null };
    }
  }

  #all(program: Program, undos: string[]): number | "cancelled" {
    let sum = 0;
    for (const command of program) {
      if (command.op === "cancelled") {
        this.counted.push(command.name);
        return "cancelled";
      }
      if (command.op === "again") {
        undos.length = 0;
        const rest = this.#all(command.rest, undos);
        return rest === "cancelled" ? rest : rest + 1_000;
      }
      sum += this.#one(command, undos);
    }
    return sum;
  }

  #sum(program: Program, undos: string[]): number {
    const sum = this.#all(program, undos);
    if (sum === "cancelled") throw new Error("only a whole program is cancelled");
    return sum;
  }

  /** The values of branches that all run to their ends. Throws if one has failed. */
  #branches(branches: readonly Program[], undos: string[]): number {
    const ends = branches.map((branch) => this.#settle(branch, undos));
    if (ends.includes(undefined)) throw new Failed();
    return ends.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  }

  #settle(program: Program, undos: string[]): number | undefined {
    try {
      return this.#sum(program, undos);
    } catch (error) {
      if (error instanceof Failed) return undefined;
      throw error;
    }
  }

  #one(command: Command, undos: string[]): number {
    switch (command.op) {
      case "count":
        this.counted.push(command.name);
        return 1;
      case "fatal":
        this.counted.push(command.name);
        throw new Failed();
      case "undo":
        undos.push(command.name);
        return 0;
      case "parallel":
        return this.#branches(command.branches, undos);
      case "map":
        return command.items.reduce((sum, item) => sum + (this.#settle(item, undos) ?? 100), 0);
      case "race": {
        const value = this.#sum(command.body, undos);
        if (command.never === "object") this.#add(command.name, 1_001);
        return value;
      }
      case "any":
      case "timeout":
      case "shield":
        return this.#sum(command.body, undos);
      case "attempt":
        return this.#settle(command.body, undos) ?? 10 + this.#sum(command.otherwise, undos);
      case "signal":
        if (command.from === "outside") this.signals.set(command.signal, command.value);
        return command.value;
      case "promise":
        if (command.rejects) throw new Failed();
        return command.value;
      case "call": {
        const { status, value } = this.run(command.body);
        const meanwhile = this.#sum(command.meanwhile, undos);
        if (status !== "completed") throw new Failed();
        return meanwhile + (value ?? 0);
      }
      case "send":
        this.run(command.body);
        return 0;
      case "object":
        return this.#object(command, undos);
      case "update": {
        const { name, value, body } = command;
        const sum = this.#settle(body, undos);
        this.updates.set(name, { value, reply: sum === undefined ? "failed" : sum + value });
        return sum === undefined ? 50 : sum + value;
      }
      case "sleep":
      case "values":
      case "again":
      case "cancelled":
        return 0;
    }
  }

  #object({ key, by, how, body, meanwhile }: Command & { op: "object" }, undos: string[]): number {
    if (how === "read") return 0;
    const { status, value } = this.run(body);
    this.#add(key, status === "completed" ? by + 1_000 : by);
    const sum = this.#sum(meanwhile, undos);
    if (how === "send") return 0;
    if (status !== "completed") throw new Failed();
    return sum + (value ?? 0);
  }

  #add(key: string, by: number): void {
    this.states.set(key, (this.states.get(key) ?? 0) + by);
  }
}

/** What a program must do, whatever happens to the processes that execute it. */
export function predict(program: Program): Predicted {
  const prediction = new Prediction();
  const { status, value } = prediction.run(program);
  const { counted, signals, updates, states } = prediction;
  return { status, value, counted, signals, updates, states };
}
