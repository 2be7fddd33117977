import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { visibleLine, visibleText } from "../../../src/kernel/index.ts";
import { get, put, RequestError } from "../../api/client.ts";
import { announce } from "../../base/announce.ts";
import { useRead } from "../../api/use-read.ts";
import { lineDiff } from "../../model/line-diff.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { dialog, FormDialog } from "../../parts/dialog.tsx";
import { Diff, diffCount } from "../../parts/diff.tsx";

/** Shows what would change in the agent's file, and saves it if a person agrees. */
export function openSavePrompt(agent: string, instructions: string): void {
  dialog.value = () => <SavePrompt agent={agent} instructions={instructions} />;
}

function SavePrompt({
  agent,
  instructions,
}: {
  readonly agent: string;
  readonly instructions: string;
}): JSX.Element {
  const [times, setTimes] = useState(0);
  const { value, problem } = useRead(
    () => get("/api/agents/{name}/options", { params: { name: agent } }),
    [agent, times],
  );
  const file = value?.file ?? null;
  const patch = file === null ? "" : lineDiff(file.instructions, instructions);
  const save = async (): Promise<void> => {
    if (file === null) throw new Error("The agent has no file that holds its instructions.");
    try {
      await put("/api/agents/{name}/instructions", {
        params: { name: agent },
        body: { instructions, hash: file.hash },
      });
      announce(`Saved to ${file.path}.`);
    } catch (error) {
      // The next drawing shows the diff to the file as it is now.
      if (error instanceof RequestError && error.code === "version_mismatch") setTimes(times + 1);
      throw error;
    }
  };
  return (
    <FormDialog
      title={`Save the instructions of ${visibleLine(agent)}`}
      confirm="Save to the file"
      wide
      isOff={file === null || file.refusal !== null || patch === ""}
      onConfirm={save}
    >
      {problem !== null && <p class="problem">{problem}</p>}
      {file?.refusal != null && <p class="problem">{visibleText(file.refusal)}</p>}
      {file !== null && (
        <>
          <p>
            <code>{visibleLine(file.path)}</code> {patch === "" ? "has this text already." : diffCount(patch)}
          </p>
          <p class="dim">
            The front matter of the file stays. Runs that start from now on use the new text; runs in progress
            keep theirs.
          </p>
          {patch !== "" && <Diff patch={patch} />}
        </>
      )}
      <CopyButton text={instructions} label="Copy the new instructions" />
    </FormDialog>
  );
}
