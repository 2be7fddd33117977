import { upgradeFile } from "../../../../src/runtime/stores/sqlite/upgrade-file.ts";
import { plantedSchema } from "./planted-format.ts";

/** Upgrades a file to the planted format, in a process that a test starts with the arguments `PATH STAGE`: it is killed at that stage. */
const [, , path = "", deadly = ""] = process.argv;

const { backup } = await upgradeFile(path, [plantedSchema], (stage) => {
  if (stage === deadly) process.kill(process.pid, "SIGKILL");
});
process.stdout.write(`${backup}\n`);
