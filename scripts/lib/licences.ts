/** The licences of everything that an executable carries, as one text. */

import { join } from "node:path";
import { type Platform, readLock, REPOSITORY, WHEEL_CACHE, wheelsFor } from "./wheel-lock.ts";
import { readZip, type ZipEntry } from "./zip.ts";

const RULE = "=".repeat(80);
const LICENCE_FILE = /\.dist-info\/(licenses\/.*|(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*)$/i;

const BUN = `Bun is the runtime that this program is compiled with. It is under the MIT licence,
and links JavaScriptCore and other libraries statically, some of them under the LGPL 2. What they
are, their licences and how to relink them is told at https://bun.com/docs/project/license`;

/** One section for Bun, each JavaScript dependency and each wheel of the platform. */
export async function collectLicences(platform: Platform): Promise<string> {
  const sections = [section(`Bun ${Bun.version}`, BUN)];
  const { dependencies } = await Bun.file(join(REPOSITORY, "package.json")).json();
  for (const name of Object.keys(dependencies).sort()) {
    const folder = join(REPOSITORY, "node_modules", name);
    const text = await Bun.file(join(folder, "LICENSE")).text();
    sections.push(section(`${name} ${dependencies[name]}`, text));
  }
  for (const { name, version, file } of wheelsFor(platform, await readLock())) {
    const entries = readZip(await Bun.file(join(WHEEL_CACHE, file)).bytes());
    const title = `${name} ${version}`;
    // Wheels of one version for several Pythons say the same.
    if (sections.some((known) => known.startsWith(heading(title)))) continue;
    sections.push(section(title, wheelLicence(entries)));
  }
  return sections.join("\n");
}

function wheelLicence(entries: readonly ZipEntry[]): string {
  const texts = entries
    .filter((entry) => LICENCE_FILE.test(entry.path))
    .map((entry) => Buffer.from(entry.data).toString("utf8"));
  if (texts.length > 0) return texts.join("\n");
  const metadata = entries.find((entry) => entry.path.endsWith(".dist-info/METADATA"));
  const lines = Buffer.from(metadata?.data ?? [])
    .toString("utf8")
    .split("\n");
  const named = lines.filter((line) => /^(License|Classifier: License)/.test(line));
  if (named.length === 0) throw new Error(`${metadata?.path} names no licence`);
  return named.join("\n");
}

function section(title: string, text: string): string {
  return `${heading(title)}${text.trim()}\n`;
}

function heading(title: string): string {
  return `${RULE}\n${title}\n${RULE}\n\n`;
}
