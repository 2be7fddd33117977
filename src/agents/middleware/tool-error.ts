import { Fault, stopsTask } from "../../kernel/index.ts";
import type { EditText } from "./message-text.ts";

/** T2: what a tool throws is shown to the model as well. Its words are edited like those of a result; what stops the run is not the tool's. */
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
