import type { SessionId } from "../base/identity.ts";
import type {
  AnswerableEventType,
  ExtensionEvent,
  ExtensionEventType,
  ExtensionResult,
} from "../events/extension-event.ts";
import type { Model } from "../messages/model.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { Architecture } from "./architecture.ts";
import type { ExtensionContext, ExtensionEventContext } from "./extension-context.ts";
import type { Guardrail } from "./guardrail.ts";
import type { Memory } from "./memory.ts";
import type { EphemeralSource, Skill } from "./prompt-source.ts";
import type { Tool } from "./tool.ts";

/** A function of an extension that handles events of one type. */
export type ExtensionHandler<Type extends ExtensionEventType> = (
  event: ExtensionEvent<Type>,
  context: Type extends AnswerableEventType ? ExtensionContext : ExtensionEventContext,
) => ExtensionResult<Type> | Promise<ExtensionResult<Type>>;

/** A slash command of the chat. `Agent.runCommand` runs it. */
export interface Command {
  /** Name of the command, without the slash. */
  readonly name: string;
  /** One line that the chat shows in its list of commands. */
  readonly description: string;
  /** Runs the command with the text that the user typed after its name. */
  run(args: string, context: ExtensionEventContext): void | Promise<void>;
}

/** The result of `Agent.runCommand`. */
export interface CommandResult {
  /**
   * The session in which the chat continues: the session of the command, or another one if the command has
   * navigated to it.
   */
  readonly sessionId: SessionId;
}

/** A part of the system prompt that an extension adds after the agent's instructions. */
export interface PromptPart {
  /** Name of the part. */
  readonly name: string;
  /** The text, or a function that returns it. The function is called once per invocation, inside the step `turn`. */
  readonly text: string | ((facts: RunFacts) => string | Promise<string>);
}

/**
 * What an extension can register during `Extension.setup`. A second registration of the same kind and name throws
 * `already_exists`; an option of the agent with the same name takes precedence. After `setup` has ended, every
 * method throws `closed`.
 */
export interface ExtensionApi {
  /** Registers a handler for events of this type. Handlers of one type run in the order of registration. */
  on<Type extends ExtensionEventType>(type: Type, handler: ExtensionHandler<Type>): void;
  /** Registers a tool. A tool of the agent with the same name takes precedence. */
  registerTool(tool: Tool): void;
  /** Registers a slash command. */
  registerCommand(command: Command): void;
  /**
   * Registers a guardrail, which runs after the agent's own guardrails. If the agent has a guardrail of the same
   * name, that one takes precedence.
   */
  registerGuardrail(guardrail: Guardrail): void;
  /** Registers a model under a name of the form `provider/id`, for `sessions.setModel` and `ctx.modelRegistry`. */
  registerModel(name: string, model: Model): void;
  /** Registers the memory. The option `memory` of the agent takes precedence. */
  registerMemory(memory: Memory): void;
  /** Registers a part of the system prompt. */
  registerPrompt(prompt: PromptPart): void;
  /**
   * Registers a skill. The system prompt lists the skills that are not hidden, and the tool `skill` returns the body of
   * one.
   */
  registerSkill(skill: Skill): void;
  /** Registers a source of live state that the model sees before each turn. */
  registerEphemeral(source: EphemeralSource): void;
  /**
   * Registers an architecture that the option `architecture` of the agent may name. Throws `unsupported` for an
   * architecture with workers, because workers must be registered with the agent; pass such an architecture as the
   * option itself.
   */
  registerArchitecture(name: string, create: () => Architecture): void;
}

/**
 * Code that handles an agent's events. S4: the runtime records an error that a handler throws, and continues the
 * run. An error in the handler of `tool_call` denies the call, and one in the handler of `tool_result` withholds
 * the result from the model.
 *
 * @example
 * ```ts
 * import { Agent, type Extension } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const careful: Extension = {
 *   name: "careful",
 *   setup(api) {
 *     api.on("tool_call", async ({ toolName }, { ui }) => {
 *       if (toolName !== "publish" || (await ui.confirm("Publish now?"))) return;
 *       return { block: true, reason: "A person refused." };
 *     });
 *   },
 * };
 *
 * const agent = new Agent({ name: "editor", model: scriptedModel(["Done."]), extensions: [careful] });
 * ```
 */
export interface Extension {
  /** Name of the extension, as it appears in `extension_error`. */
  readonly name: string;
  /**
   * Whether the agent denies all tool calls if `setup` fails. Set it for an extension that checks tool calls. Calls
   * are also denied if `setup` fails after it has registered a handler of `tool_call` or `tool_result`. Default:
   * `false`.
   */
  readonly required?: boolean;
  /**
   * Registers handlers, tools and other parts. Called once per agent, before its first invocation. An extension whose
   * `setup` fails registers nothing.
   */
  setup(api: ExtensionApi): void | Promise<void>;
}

/** Guardrails, extensions and tools that a workspace adds to an agent from its files. */
export interface ResourceSource {
  /** Returns the guardrails. They take precedence over guardrails of extensions with the same name. */
  guardrails(): Promise<readonly Guardrail[]>;
  /** Returns the extensions. */
  extensions(): Promise<readonly Extension[]>;
  /** Returns the tools. */
  tools(): Promise<readonly Tool[]>;
  /** Reads the files again. */
  reload(): Promise<void>;
}
