import type { ExtensionContext } from "./extension-context.ts";
import type { ExtensionEvent, ExtensionEventType, ExtensionResult } from "./extension-event.ts";
import type { Guardrail } from "./guardrail.ts";
import type { Model } from "../messages/model.ts";
import type { Tool } from "./tool.ts";

export type ExtensionHandler<Type extends ExtensionEventType> = (
  event: ExtensionEvent<Type>,
  context: ExtensionContext,
) => ExtensionResult<Type> | Promise<ExtensionResult<Type>>;

/** A slash command of the chat. */
export interface Command {
  readonly name: string;
  readonly description: string;
  run(args: string, context: ExtensionContext): Promise<void>;
}

/** What an extension can add while it is set up. */
export interface ExtensionApi {
  on<Type extends ExtensionEventType>(type: Type, handler: ExtensionHandler<Type>): void;
  /** Built-in tools win over an extension's of the same name. */
  registerTool(tool: Tool): void;
  registerCommand(command: Command): void;
  /** One from a file wins over an extension's of the same name. */
  registerGuardrail(guardrail: Guardrail): void;
  registerModel(name: string, model: Model): void;
}

/** Code that lives in an agent's events. What it throws is recorded, and the run goes on (S4). */
export interface Extension {
  readonly name: string;
  setup(api: ExtensionApi): void | Promise<void>;
}
