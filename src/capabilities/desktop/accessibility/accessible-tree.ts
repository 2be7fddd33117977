import { Fault } from "../../../kernel/index.ts";
import { plainLine, plainText } from "../plain-text.ts";
import { DBusConnection } from "./dbus-connection.ts";
import type { DBusValue } from "./dbus-value.ts";

/** Address of an element on the accessibility bus. */
interface Reference {
  readonly owner: string;
  readonly path: string;
}

const accessible = "org.a11y.atspi.Accessible";
const textInterface = "org.a11y.atspi.Text";
const registry: Reference = {
  owner: "org.a11y.atspi.Registry",
  path: "/org/a11y/atspi/accessible/root",
};
/** Text that describes one window. */
interface WindowText {
  readonly title?: string;
  readonly text: string;
}

/** The windows that programs describe through the accessibility bus. */
export interface DescribedWindows {
  readonly windows: readonly WindowText[];
  /** Why the bus could not be read, if it could not. */
  readonly reason?: string;
}

/** Bits of an element's states, as AT-SPI defines them. */
const states = { checked: 4, enabled: 8, focused: 12, selected: 23, showing: 25, editable: 18 } as const;
/** Limits of one description. They exist because a program may have any number of elements. */
const [maxElements, maxDepth, maxChildren, maxTextLength, maxNameLength] = [1_500, 30, 200, 2_000, 200];
const screenCoordinates = 0;

/**
 * Reads the accessibility trees of the programs on a desktop through AT-SPI: roles, names, texts and positions of their
 * elements.
 */
export class AccessibleTree {
  readonly #lookMs: number;
  readonly #answerMs: number;
  #bus: { readonly address: string; readonly connection: DBusConnection } | undefined;

  /**
   * `lookMs` is the maximum duration of one description; it then ends with what was read. `answerMs` is the maximum
   * duration of one answer of a program.
   */
  constructor({
    lookMs = 10_000,
    answerMs = 2_000,
  }: { readonly lookMs?: number; readonly answerMs?: number } = {}) {
    this.#lookMs = lookMs;
    this.#answerMs = answerMs;
  }

  /**
   * Describes all windows. `known` is the address of the accessibility bus. Default: the address that the session bus
   * reports. Never rejects: if the bus cannot be read, `reason` says why.
   */
  async describe(known: string | undefined): Promise<DescribedWindows> {
    try {
      const bus = await this.#open(known);
      const room = { left: maxElements, until: performance.now() + this.#lookMs };
      const windows: WindowText[] = [];
      for (const program of await childrenOf(bus, registry)) {
        if (isSpent(room)) break;
        windows.push(...(await this.#program(bus, program, room)));
      }
      const { left, until } = room;
      if (left < 0) windows.push({ text: `[more than ${maxElements} elements: the rest is not shown]` });
      else if (performance.now() >= until)
        windows.push({ text: `[reading took longer than ${this.#lookMs} ms: the rest is not shown]` });
      return { windows };
    } catch (error) {
      return { windows: [], reason: Fault.from(error).message };
    }
  }

  /** Closes the connection to the bus. */
  close(): void {
    this.#bus?.connection.close();
    this.#bus = undefined;
  }

  async #open(known: string | undefined): Promise<DBusConnection> {
    const address = known || (await addressFromSession(this.#answerMs));
    if (this.#bus?.address === address && this.#bus.connection.isOpen) return this.#bus.connection;
    this.close();
    const connection = await DBusConnection.open(address, this.#answerMs);
    this.#bus = { address, connection };
    return connection;
  }

  /**
   * Describes the windows of one program. After a question without an answer, the program is asked nothing more,
   * because every question would take until its timeout.
   */
  async #program(bus: DBusConnection, program: Reference, room: ReadBudget): Promise<readonly WindowText[]> {
    const windows: WindowText[] = [];
    try {
      for (const window of (await unlessRefused(childrenOf(bus, program))) ?? []) {
        if (isSpent(room)) break;
        const lines = await this.#lines(bus, window, 0, room);
        if (lines.length > 0) windows.push({ title: await nameOf(bus, window), text: lines.join("\n") });
      }
    } catch (error) {
      const { code, message } = Fault.from(error);
      if (code !== "tool_timeout") throw error;
      windows.push({ text: `[${message}]` });
    }
    return windows;
  }

  async #lines(
    bus: DBusConnection,
    element: Reference,
    depth: number,
    room: ReadBudget,
  ): Promise<readonly string[]> {
    if (isSpent(room) || room.left-- === 0 || depth > maxDepth) return [];
    const facts = await unlessRefused(read(bus, element));
    if (facts === undefined || !facts.has(states.showing)) return [];
    const line = lineOf(facts);
    // An element that only groups others gets no line and no indentation.
    const below = line === undefined ? depth : depth + 1;
    const children = ((await unlessRefused(childrenOf(bus, element))) ?? []).slice(0, maxChildren);
    const lines = line === undefined ? [] : [`${"  ".repeat(depth)}- ${line}`];
    for (const child of children) lines.push(...(await this.#lines(bus, child, below, room)));
    return lines;
  }
}

/** Budget of one description. */
interface ReadBudget {
  /** Number of elements that may still be read. A negative number means that the limit was exceeded. */
  left: number;
  /** End of the description, in milliseconds of `performance.now()`. */
  readonly until: number;
}

function isSpent({ left, until }: ReadBudget): boolean {
  return left < 0 || performance.now() >= until;
}

/**
 * Returns the answer, or `undefined` if the program refused. Elements disappear between two questions, and programs do
 * not support every question.
 */
async function unlessRefused<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (Fault.from(error).code === "tool_failed") return undefined;
    throw error;
  }
}

/** What a program reports about one element. */
interface ElementFacts {
  readonly role: string;
  readonly name: string;
  readonly text: string;
  readonly place: readonly number[];
  has(state: number): boolean;
}

async function read(bus: DBusConnection, { owner, path }: Reference): Promise<ElementFacts> {
  const at = { destination: owner, path };
  const [[role], name, [bits], [interfaces]] = await Promise.all([
    bus.call({ ...at, interface: accessible, member: "GetRoleName" }),
    nameOf(bus, { owner, path }),
    bus.call({ ...at, interface: accessible, member: "GetState" }),
    bus.call({ ...at, interface: accessible, member: "GetInterfaces" }),
  ]);
  const can = (what: string): boolean => listOf(interfaces).includes(`org.a11y.atspi.${what}`);
  const placeOf = {
    ...at,
    interface: "org.a11y.atspi.Component",
    member: "GetExtents",
    signature: "u",
    args: [screenCoordinates],
  };
  const [words, place] = await Promise.all([
    can("Text") ? unlessRefused(textOf(bus, { owner, path })) : undefined,
    can("Component") ? unlessRefused(bus.call(placeOf)) : undefined,
  ]);
  const marks = listOf(bits).map(Number);
  return {
    role: plainLine(String(role), maxNameLength),
    name,
    text: plainText(words ?? "", maxTextLength),
    place: listOf(place?.[0]).map(Number),
    has: (state) => (((marks[state >> 5] ?? 0) >>> (state & 31)) & 1) === 1,
  };
}

/** Formats an element as one line. Returns `undefined` for an element without text that only contains others. */
function lineOf(facts: ElementFacts): string | undefined {
  const { role, name, text, place } = facts;
  const [x = 0, y = 0, width = 0, height = 0] = place;
  const words = [name, text === name ? "" : text].filter((each) => each.trim() !== "");
  if (
    words.length === 0 &&
    /^(?:filler|panel|scroll pane|viewport|split pane|layered pane|grouping)$/u.test(role)
  )
    return undefined;
  const marks = (["focused", "checked", "selected"] as const).filter((state) => facts.has(states[state]));
  const off = facts.has(states.enabled) ? [] : ["disabled"];
  return [
    role,
    ...words.map((each) => JSON.stringify(each)),
    ...[...marks, ...off].map((mark) => `[${mark}]`),
    ...(width > 0 ? [`at ${x},${y} size ${width}x${height}`] : []),
  ].join(" ");
}

async function nameOf(bus: DBusConnection, element: Reference): Promise<string> {
  return plainLine(String(await property(bus, element, accessible, "Name")), maxNameLength);
}

/**
 * Returns the start of an element's text, which may be very long. Some programs refuse a range that exceeds the text.
 */
async function textOf(bus: DBusConnection, element: Reference): Promise<string> {
  const count = Number(await property(bus, element, textInterface, "CharacterCount"));
  const [words] = await bus.call({
    destination: element.owner,
    path: element.path,
    interface: textInterface,
    member: "GetText",
    signature: "ii",
    args: [0, Math.min(count, maxTextLength + 1)],
  });
  return String(words);
}

async function property(
  bus: DBusConnection,
  { owner, path }: Reference,
  of: string,
  name: string,
): Promise<DBusValue | undefined> {
  const get = { interface: "org.freedesktop.DBus.Properties", member: "Get" };
  const [value] = await bus.call({ destination: owner, path, ...get, signature: "ss", args: [of, name] });
  return value;
}

async function childrenOf(bus: DBusConnection, { owner, path }: Reference): Promise<readonly Reference[]> {
  const [children] = await bus.call({
    destination: owner,
    path,
    interface: accessible,
    member: "GetChildren",
  });
  return listOf(children).map((child) => {
    const [name, at] = listOf(child);
    return { owner: String(name), path: String(at) };
  });
}

function listOf(value: DBusValue | undefined): readonly DBusValue[] {
  return Array.isArray(value) ? (value as readonly DBusValue[]) : [];
}

async function addressFromSession(answerMs: number): Promise<string> {
  const session = process.env["DBUS_SESSION_BUS_ADDRESS"] ?? "";
  if (session === "")
    throw new Fault(
      "dependency_missing",
      "there is no accessibility bus: run the programs in a session with D-Bus and AT-SPI (on Debian: apt-get install dbus at-spi2-core)",
    );
  const bus = await DBusConnection.open(session, answerMs);
  try {
    const where = { destination: "org.a11y.Bus", path: "/org/a11y/bus", interface: "org.a11y.Bus" };
    const [address] = await bus.call({ ...where, member: "GetAddress" });
    return String(address);
  } finally {
    bus.close();
  }
}
