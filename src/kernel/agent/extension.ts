import type { ExtensionContext } from "./extension-context.ts";
import type { ExtensionEvent, ExtensionEventType, ExtensionResult } from "./extension-event.ts";
import type { Guardrail } from "./guardrail.ts";
import type { Model } from "../messages/model.ts";
import type { Tool } from "./tool.ts";

/** A function of an extension that handles events of one type. */
export type ExtensionHandler<Type extends ExtensionEventType> = (
  event: ExtensionEvent<Type>,
  context: ExtensionContext,
) => ExtensionResult<Type> | Promise<ExtensionResult<Type>>;

/** A slash command of the chat. */
export interface Command {
  /** Name of the command, without the slash. */
  readonly name: string;
  /** One line that the chat shows in its list of commands. */
  readonly description: string;
  /** Runs the command with the text that the user typed after its name. */
  run(args: string, context: ExtensionContext): Promise<void>;
}

/** What an extension can register during `Extension.setup`. */
export interface ExtensionApi {
  /** Registers a handler for events of this type. */
  on<Type extends ExtensionEventType>(type: Type, handler: ExtensionHandler<Type>): void;
  /** Registers a tool. A built-in tool with the same name takes precedence. */
  registerTool(tool: Tool): void;
  /** Registers a slash command. */
  registerCommand(command: Command): void;
  /** Registers a guardrail. A guardrail from a file with the same name takes precedence. */
  registerGuardrail(guardrail: Guardrail): void;
  /** Registers a model under a name of the form `provider/id`. */
  registerModel(name: string, model: Model): void;
}

/**
 * Code that handles an agent's events. S4: an error that it throws is recorded, and the run continues. An error in the
 * handler of `tool_call` denies the call.
 */
export interface Extension {
  /** Name of the extension, as it appears in `extension_error`. */
  readonly name: string;
  /** Registers handlers, tools, commands, guardrails and models. Called once when the extension is loaded. */
  setup(api: ExtensionApi): void | Promise<void>;
}
