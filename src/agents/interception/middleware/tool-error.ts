import { Fault, stopsTask } from "../../../kernel/index.ts";
import type { EditText } from "./message-text.ts";

/**
 * T2: edits the error that a tool throws, because the model sees its text like a result. Errors that stop the run
 * are not edited.
 */
export async function editThrown(next: () => Promise<void>, edit: EditText): Promise<void> {
  try {
    await next();
  } catch (error) {
    if (stopsTask(error)) throw error;
    const { message } = Fault.from(error);
    const edited = edit(message);
    throw edited === message ? error : new Fault("tool_failed", edited, { cause: error });
  }
}
