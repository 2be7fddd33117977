import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Fault } from "../../kernel/index.ts";
import { currentProcess, type SimulatedProcess } from "./scheduler.ts";

/** Folders of this package whose code must take time, random numbers and timers only from its ports. */
const guarded = ["kernel", "runtime", "agents"].map((layer) =>
  fileURLToPath(new URL(`../../${layer}/`, import.meta.url)),
);

/** The ports themselves. */
const ports = /system-sources\.[jt]s/u;

type Called = (...given: never[]) => unknown;

let installed = false;

/**
 * Replaces the global sources of time, chance and turns for the code of simulated processes: they get the clock, the random numbers and
 * the timers of their process. All other code of this process gets what the machine gives. `fetch` is refused, because a real
 * request has no place in virtual time. The replacements stay, because code may have kept them.
 *
 * @advanced
 */
export function replaceAmbient(): void {
  if (installed) return;
  installed = true;
  const { Date: RealDate, setTimeout, setInterval, setImmediate, fetch, crypto } = globalThis;
  const real = {
    now: RealDate.now.bind(RealDate),
    elapsed: performance.now.bind(performance),
    random: Math.random.bind(Math),
    uuid: crypto.randomUUID.bind(crypto),
    clearTimeout: globalThis.clearTimeout,
    clearInterval: globalThis.clearInterval,
    clearImmediate: globalThis.clearImmediate,
  };

  const dateNow = (): number => inProcess("Date.now()", dateNow)?.clock.now() ?? real.now();
  const construct = (target: DateConstructor, given: unknown[], newTarget: Called): object => {
    const process = given.length === 0 ? inProcess("new Date()", construct) : undefined;
    return Reflect.construct(
      target,
      process === undefined ? given : [process.clock.now()],
      newTarget,
    ) as object;
  };
  globalThis.Date = new Proxy(RealDate, {
    construct,
    apply: (target) => {
      const process = currentProcess();
      return (process === undefined ? new target() : new target(process.clock.now())).toString();
    },
    get: (target, key) => (key === "now" ? dateNow : Reflect.get(target, key)) as unknown,
  });
  const elapsed = (): number =>
    inProcess("performance.now()", elapsed)?.eventLoop.elapsed() ?? real.elapsed();
  performance.now = elapsed;
  const random = (): number => inProcess("Math.random()", random)?.random.next() ?? real.random();
  Math.random = random;
  const randomUUID: typeof crypto.randomUUID = () => {
    const process = inProcess("crypto.randomUUID()", randomUUID);
    return process === undefined ? real.uuid() : uuidOf(process);
  };
  crypto.randomUUID = randomUUID;

  const timeout = (run: Called, ms = 0, ...given: never[]): unknown => {
    const process = inProcess("setTimeout()", timeout);
    return process === undefined
      ? setTimeout(() => void run(...given), ms)
      : new SimulatedTimer(process.after(Math.max(1, ms), () => void run(...given)));
  };
  const interval = (run: Called, ms = 0, ...given: never[]): unknown => {
    const process = inProcess("setInterval()", interval);
    return process === undefined
      ? setInterval(() => void run(...given), ms)
      : new SimulatedTimer(process.every(Math.max(1, ms), () => void run(...given)));
  };
  const immediate = (run: Called, ...given: never[]): unknown => {
    const process = inProcess("setImmediate()", immediate);
    return process === undefined
      ? setImmediate(() => void run(...given))
      : new SimulatedTimer(process.after(0, () => void run(...given)));
  };
  const clear =
    (clearReal: (timer: never) => void) =>
    (timer: unknown): void => {
      if (timer instanceof SimulatedTimer) timer.cancel();
      else clearReal(timer as never);
    };
  // `util.promisify` finds the promises of the real timers here.
  for (const [by, of] of [
    [timeout, setTimeout],
    [immediate, setImmediate],
  ] as const)
    Object.defineProperty(by, promisify.custom, { value: Reflect.get(of, promisify.custom) as unknown });
  Object.assign(globalThis, {
    setTimeout: timeout,
    setInterval: interval,
    setImmediate: immediate,
    clearTimeout: clear(real.clearTimeout),
    clearInterval: clear(real.clearInterval),
    clearImmediate: clear(real.clearImmediate),
    fetch: (...given: Parameters<typeof fetch>) => {
      if (currentProcess() === undefined) return fetch(...given);
      throw new Fault(
        "unsupported",
        "fetch() has no place in a simulation: make the call with `call` of the site, so that it takes virtual time and can fail",
      );
    },
  });
}

/** A timer of a simulated process. */
class SimulatedTimer {
  readonly cancel: () => void;

  constructor(cancel: () => void) {
    this.cancel = cancel;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}

/**
 * Returns the process whose code calls a global function. Throws if that code belongs to a layer that must use its
 * ports.
 */
function inProcess(source: string, called: Called): SimulatedProcess | undefined {
  const process = currentProcess();
  if (process === undefined) return undefined;
  const holder = { stack: "" };
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 1;
  Error.captureStackTrace(holder, called);
  Error.stackTraceLimit = stackTraceLimit;
  const where = fileOf(holder.stack);
  if (guarded.some((folder) => where.startsWith(folder)) && !ports.test(where))
    throw new Fault(
      "internal",
      `${where} calls ${source} outside of the ports: take a Clock, an EventLoop or a Random`,
      { details: { source, where } },
    );
  return process;
}

/** The path of the caller, from the first line of a stack. */
function fileOf(stack: string): string {
  const [, line = ""] = stack.split("\n");
  const place = /\(?((?:file:\/\/)?\/[^()]*?):\d+:\d+\)?$/u.exec(line)?.[1] ?? "";
  return place.startsWith("file://") ? fileURLToPath(place) : place;
}

function uuidOf({ random }: SimulatedProcess): ReturnType<typeof crypto.randomUUID> {
  const digits = (count: number): string =>
    Array.from({ length: count }, () => random.below(16).toString(16)).join("");
  return `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`;
}
