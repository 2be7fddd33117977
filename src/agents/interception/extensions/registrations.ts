import {
  checkMethods,
  checkSkill,
  deltaTypes,
  describeValue,
  eventTypes,
  Fault,
  nearestName,
  readProperty,
  type AnswerableEventType,
  type Architecture,
  type Command,
  type Delta,
  type EphemeralSource,
  type ExtensionApi,
  type ExtensionEventType,
  type Guardrail,
  type Memory,
  type Model,
  type PromptPart,
  type Skill,
  type Tool,
} from "../../../kernel/index.ts";
import { checkArchitecture, checkGuardrail, checkTool } from "../../base/part-check.ts";
import { answerRules } from "./answer-rules.ts";

/** A handler of an extension, without the type of its event. */
export interface RegisteredHandler {
  readonly extension: string;
  readonly handle: (event: never, context: never) => unknown;
}

/** A command and the extension that registered it. */
interface RegisteredCommand {
  readonly extension: string;
  readonly command: Command;
}

/** A part of the system prompt and the extension that registered it. */
interface RegisteredPrompt {
  readonly extension: string;
  readonly part: PromptPart;
}

/** The kinds of named parts. */
interface NamedParts {
  tool: Tool;
  command: RegisteredCommand;
  guardrail: Guardrail;
  model: Model;
  prompt: RegisteredPrompt;
  skill: Skill;
  architecture: () => Architecture;
}

type PartKind = keyof NamedParts;

const noNames: { readonly [Kind in PartKind]: true } = {
  tool: true,
  command: true,
  guardrail: true,
  model: true,
  prompt: true,
  skill: true,
  architecture: true,
};

/** The name of a memory in `hook_error`. */
export const memoryHook = "memory";

/** All event types for which a handler can be registered. */
const handledTypes: ReadonlySet<string> = new Set([
  ...Object.keys(answerRules),
  ...eventTypes,
  ...deltaTypes,
]);

/** Whether events of this type are deltas, which are streamed and not stored. */
export function isDelta(type: ExtensionEventType): type is Delta["type"] {
  return (deltaTypes as readonly string[]).includes(type);
}

export function isAnswerable(type: ExtensionEventType): type is AnswerableEventType {
  return Object.hasOwn(answerRules, type);
}

/** The parts that the extensions of an agent have registered, in the order of registration. */
export class Registrations {
  readonly handlers = new Map<ExtensionEventType, RegisteredHandler[]>();
  readonly ephemeral: EphemeralSource[] = [];
  memory: Memory | undefined;
  /** The extensions that registered the memory and the ephemeral sources, by the name that `hook_error` uses. */
  readonly #owners = new Map<string, string>();
  readonly #parts = new Map<PartKind, Map<string, unknown>>();

  constructor() {
    for (const kind of Object.keys(noNames) as PartKind[]) this.#parts.set(kind, new Map());
  }

  all<Kind extends PartKind>(kind: Kind): ReadonlyMap<string, NamedParts[Kind]> {
    return this.#parts.get(kind) as Map<string, NamedParts[Kind]>;
  }

  /** Adds a part. Throws `already_exists` if a part here or in `others` has the same name. */
  add<Kind extends PartKind>(kind: Kind, name: string, part: NamedParts[Kind], others: Registrations): void {
    if (this.all(kind).has(name) || others.all(kind).has(name))
      throw new Fault(
        "already_exists",
        `an extension has already registered the ${kind} ${name}; choose another name`,
      );
    this.#parts.get(kind)?.set(name, part);
  }

  /** Whether the extensions have registered a memory, or a source of text that is sent but not stored. */
  get hasSources(): boolean {
    return this.#owners.size > 0;
  }

  /** Returns the extension that registered the memory, or the ephemeral source of this name. */
  sourceOwner(hook: string): string | undefined {
    return this.#owners.get(hook);
  }

  addMemory(memory: Memory, extension: string): void {
    this.memory = memory;
    this.#owners.set(memoryHook, extension);
  }

  /** Removes the registered memory, because the agent has its own. */
  dropMemory(): void {
    this.memory = undefined;
    this.#owners.delete(memoryHook);
  }

  addEphemeral(source: EphemeralSource, extension: string): void {
    this.ephemeral.push(source);
    this.#owners.set(source.name, extension);
  }

  /** Adds everything that one extension has registered. */
  merge(more: Registrations): void {
    for (const [type, handlers] of more.handlers)
      this.handlers.set(type, [...(this.handlers.get(type) ?? []), ...handlers]);
    this.ephemeral.push(...more.ephemeral);
    this.memory ??= more.memory;
    for (const [hook, extension] of more.#owners) this.#owners.set(hook, extension);
    for (const [kind, parts] of more.#parts)
      for (const [name, part] of parts) this.#parts.get(kind)?.set(name, part);
  }
}

/** The `ExtensionApi` of one extension during its `setup`. */
export class SetupApi implements ExtensionApi {
  readonly registered = new Registrations();
  readonly #extension: string;
  readonly #others: Registrations;
  #isOver = false;

  constructor(extension: string, others: Registrations) {
    this.#extension = extension;
    this.#others = others;
  }

  /** Ends the setup. Later calls of the extension throw. */
  end(): void {
    this.#isOver = true;
  }

  on(type: ExtensionEventType, handler: RegisteredHandler["handle"]): void {
    this.#check(`on(${JSON.stringify(type)})`);
    if (!handledTypes.has(type)) throw this.#unknownType(type);
    if (typeof handler !== "function")
      throw new Fault(
        "invalid_argument",
        `invalid handler ${describeValue(handler)} of ${type} in extension ${this.#extension}: expected a function`,
      );
    const { handlers } = this.registered;
    const known = handlers.get(type);
    const registered = { extension: this.#extension, handle: handler };
    if (known === undefined) handlers.set(type, [registered]);
    else known.push(registered);
  }

  registerTool(tool: Tool): void {
    this.#check("registerTool()");
    checkTool(tool);
    this.#add("tool", tool.name, tool);
  }

  registerCommand(command: Command): void {
    this.#check("registerCommand()");
    checkMethods(
      `command of extension ${this.#extension}`,
      command,
      ["run"],
      "use { name, description, run }",
    );
    const name = readProperty(command, "name");
    if (typeof name !== "string" || !/^[a-z0-9][a-z0-9:_-]*$/i.test(name))
      throw new Fault(
        "invalid_argument",
        `invalid name ${describeValue(name)} of a command: use letters, digits, "-", "_" and ":", without the slash`,
      );
    this.#add("command", name, { extension: this.#extension, command });
  }

  registerGuardrail(guardrail: Guardrail): void {
    this.#check("registerGuardrail()");
    checkGuardrail(guardrail, `extension ${this.#extension}`);
    this.#add("guardrail", guardrail.name, guardrail);
  }

  registerModel(name: string, model: Model): void {
    this.#check("registerModel()");
    if (typeof name !== "string" || !/^[^/]+\/.+$/.test(name))
      throw new Fault(
        "invalid_argument",
        `invalid name ${describeValue(name)} of a model: expected "provider/id", such as "acme/large"`,
      );
    checkMethods(`model ${name} of extension ${this.#extension}`, model, ["generate"], "use a Model");
    this.#add("model", name, model);
  }

  registerMemory(memory: Memory): void {
    this.#check("registerMemory()");
    const fix = "use openMemory({ path })";
    checkMethods(`memory of extension ${this.#extension}`, memory, ["blocks", "recall", "remember"], fix);
    if (this.registered.memory !== undefined || this.#others.memory !== undefined)
      throw new Fault("already_exists", "an extension has already registered a memory; register only one");
    this.registered.addMemory(memory, this.#extension);
  }

  registerPrompt(prompt: PromptPart): void {
    this.#check("registerPrompt()");
    const [name, text] = [readProperty(prompt, "name"), readProperty(prompt, "text")];
    if (typeof name !== "string" || (typeof text !== "string" && typeof text !== "function"))
      throw new Fault(
        "invalid_argument",
        `invalid prompt ${describeValue(prompt)} of extension ${this.#extension}: expected { name, text } with a text or a function that returns it`,
      );
    this.#add("prompt", name, { extension: this.#extension, part: prompt });
  }

  registerSkill(skill: Skill): void {
    this.#check("registerSkill()");
    checkMethods(`skill of extension ${this.#extension}`, skill, ["read"], "use { name, description, read }");
    this.#add("skill", checkSkill(skill).name, skill);
  }

  registerEphemeral(source: EphemeralSource): void {
    this.#check("registerEphemeral()");
    checkMethods(`ephemeral source of extension ${this.#extension}`, source, ["messages"]);
    this.registered.addEphemeral(source, this.#extension);
  }

  registerArchitecture(name: string, create: () => Architecture): void {
    this.#check("registerArchitecture()");
    if (typeof name !== "string" || name.trim() === "" || typeof create !== "function")
      throw new Fault(
        "invalid_argument",
        `invalid architecture ${describeValue(name)} of extension ${this.#extension}: expected a name and a function that creates the architecture`,
      );
    const created = checkArchitecture(create(), `architecture ${name} of extension ${this.#extension}`);
    if (Object.keys(created.declaredWorkers()).length > 0)
      throw new Fault(
        "unsupported",
        `architecture ${name} of extension ${this.#extension} has workers, which are registered with the agent; pass it as the option architecture of the agent`,
      );
    this.#add("architecture", name, create);
  }

  #add<Kind extends PartKind>(kind: Kind, name: string, part: NamedParts[Kind]): void {
    this.registered.add(kind, name, part, this.#others);
  }

  #check(method: string): void {
    if (!this.#isOver) return;
    throw new Fault(
      "closed",
      `${method} of extension ${this.#extension} was called after its setup; register everything before setup() returns`,
    );
  }

  #unknownType(type: unknown): Fault {
    const nearest = typeof type === "string" ? nearestName(type, handledTypes) : undefined;
    const advice = nearest === undefined ? "" : `; use ${JSON.stringify(nearest)}`;
    return new Fault(
      "invalid_argument",
      `invalid event type ${describeValue(type)} of extension ${this.#extension}: there is no such event${advice}`,
    );
  }
}
