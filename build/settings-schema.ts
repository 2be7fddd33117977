// Writes `settings.schema.json`, which the package publishes for editors. A test checks that the file is current.
import { writeFile } from "node:fs/promises";
import { settingsSchema } from "../src/workspace/files/settings/settings-schema.ts";

const target = new URL("../settings.schema.json", import.meta.url);
await writeFile(target, `${JSON.stringify(settingsSchema(), null, 2)}\n`);
