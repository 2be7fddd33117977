import { Fault } from "../../../kernel/index.ts";
import { plainLine, plainText } from "../plain-words.ts";
import { DBusConnection } from "./dbus-connection.ts";
import type { DBusValue } from "./dbus-value.ts";

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
/** What a program says of one of its windows. */
interface TextOfWindow {
  readonly title?: string;
  readonly text: string;
}

export interface ToldWindows {
  readonly windows: readonly TextOfWindow[];
  /** Why nothing could be asked. */
  readonly reason?: string;
}

/** Bits of an element's states, as AT-SPI numbers them. */
const states = { checked: 4, enabled: 8, focused: 12, selected: 23, showing: 25, editable: 18 } as const;
/** Bounds of one look: a program may have elements without end. */
const [mostElements, mostDepth, mostChildren, mostText, mostName] = [1_500, 30, 200, 2_000, 200];
const screenPlaces = 0;

/** What programs say of their windows to those who cannot see them: roles, names, texts and places, through AT-SPI. */
export class AccessibleTree {
  readonly #lookMs: number;
  readonly #answerMs: number;
  #bus: { readonly address: string; readonly connection: DBusConnection } | undefined;

  /** A look ends after `lookMs`, with what was read until then: programs may answer slowly, and each within `answerMs`. */
  constructor({
    lookMs = 10_000,
    answerMs = 2_000,
  }: { readonly lookMs?: number; readonly answerMs?: number } = {}) {
    this.#lookMs = lookMs;
    this.#answerMs = answerMs;
  }

  /** `known` is the bus's address; the session bus is asked for it unless told. */
  async describe(known: string | undefined): Promise<ToldWindows> {
    try {
      const bus = await this.#open(known);
      const room = { left: mostElements, until: performance.now() + this.#lookMs };
      const windows: TextOfWindow[] = [];
      for (const program of await childrenOf(bus, registry)) {
        if (isSpent(room)) break;
        windows.push(...(await this.#program(bus, program, room)));
      }
      const { left, until } = room;
      if (left < 0) windows.push({ text: `[more than ${mostElements} elements: the rest is not shown]` });
      else if (performance.now() >= until)
        windows.push({ text: `[it took longer than ${this.#lookMs} ms: the rest is not shown]` });
      return { windows };
    } catch (error) {
      return { windows: [], reason: Fault.from(error).message };
    }
  }

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

  /** One that does not answer is asked nothing more: every question would be waited for. */
  async #program(bus: DBusConnection, program: Reference, room: Room): Promise<readonly TextOfWindow[]> {
    const windows: TextOfWindow[] = [];
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
    room: Room,
  ): Promise<readonly string[]> {
    if (isSpent(room) || room.left-- === 0 || depth > mostDepth) return [];
    const told = await unlessRefused(read(bus, element));
    if (told === undefined || !told.has(states.showing)) return [];
    const line = lineOf(told);
    // What only groups others takes no line and no depth.
    const below = line === undefined ? depth : depth + 1;
    const children = ((await unlessRefused(childrenOf(bus, element))) ?? []).slice(0, mostChildren);
    const lines = line === undefined ? [] : [`${"  ".repeat(depth)}- ${line}`];
    for (const child of children) lines.push(...(await this.#lines(bus, child, below, room)));
    return lines;
  }
}

/** Of elements that may still be asked; below zero when there were more. */
interface Room {
  left: number;
  /** By the clock of `performance`. */
  readonly until: number;
}

function isSpent({ left, until }: Room): boolean {
  return left < 0 || performance.now() >= until;
}

/** Elements come and go between two questions, and not every program answers each; one that refuses has nothing to say. */
async function unlessRefused<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (Fault.from(error).code === "tool_failed") return undefined;
    throw error;
  }
}

interface Told {
  readonly role: string;
  readonly name: string;
  readonly text: string;
  readonly place: readonly number[];
  has(state: number): boolean;
}

async function read(bus: DBusConnection, { owner, path }: Reference): Promise<Told> {
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
    args: [screenPlaces],
  };
  const [words, place] = await Promise.all([
    can("Text") ? unlessRefused(textOf(bus, { owner, path })) : undefined,
    can("Component") ? unlessRefused(bus.call(placeOf)) : undefined,
  ]);
  const marks = listOf(bits).map(Number);
  return {
    role: plainLine(String(role), mostName),
    name,
    text: plainText(words ?? "", mostText),
    place: listOf(place?.[0]).map(Number),
    has: (state) => (((marks[state >> 5] ?? 0) >>> (state & 31)) & 1) === 1,
  };
}

/** `undefined` for what says nothing and only holds others. */
function lineOf(told: Told): string | undefined {
  const { role, name, text, place } = told;
  const [x = 0, y = 0, width = 0, height = 0] = place;
  const words = [name, text === name ? "" : text].filter((each) => each.trim() !== "");
  if (
    words.length === 0 &&
    /^(?:filler|panel|scroll pane|viewport|split pane|layered pane|grouping)$/u.test(role)
  )
    return undefined;
  const marks = (["focused", "checked", "selected"] as const).filter((state) => told.has(states[state]));
  const off = told.has(states.enabled) ? [] : ["disabled"];
  return [
    role,
    ...words.map((each) => JSON.stringify(each)),
    ...[...marks, ...off].map((mark) => `[${mark}]`),
    ...(width > 0 ? [`at ${x},${y} size ${width}x${height}`] : []),
  ].join(" ");
}

async function nameOf(bus: DBusConnection, element: Reference): Promise<string> {
  return plainLine(String(await property(bus, element, accessible, "Name")), mostName);
}

/** Its beginning: the whole may be a book. Some programs refuse to be asked for more than there is. */
async function textOf(bus: DBusConnection, element: Reference): Promise<string> {
  const count = Number(await property(bus, element, textInterface, "CharacterCount"));
  const [words] = await bus.call({
    destination: element.owner,
    path: element.path,
    interface: textInterface,
    member: "GetText",
    signature: "ii",
    args: [0, Math.min(count, mostText + 1)],
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
      "there is no accessibility bus: run programs in a session with D-Bus and AT-SPI (on Debian: apt-get install dbus at-spi2-core)",
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
