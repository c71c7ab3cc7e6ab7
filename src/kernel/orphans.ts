/**
 * As process 1 of a container, this program inherits every process whose
 * parent ended, and would be left with their zombies: nobody else collects
 * them, and Bun only collects children of its own.
 */

import { dlopen, FFIType } from "bun:ffi";
import { readFileSync } from "node:fs";
import { debug } from "../log.ts";

const LOOK_MS = 1_000;
const WNOHANG = 1;
/** glibc's, and musl's for both processors. */
const C_LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/** Collects inherited zombies now and again, for as long as the process lives. Does nothing unless it is process 1. */
export function collectOrphans(): void {
  if (process.pid !== 1 || process.platform !== "linux") return;
  const waitpid = findWaitpid();
  if (!waitpid) return;
  let before = new Set<number>();
  const look = () => {
    const zombies = childrenOf(process.pid).filter(isZombie);
    // Bun collects a child of its own at once; what is there at the second look is nobody's.
    for (const pid of zombies.filter((zombie) => before.has(zombie))) waitpid(pid, null, WNOHANG);
    before = new Set(zombies);
  };
  setInterval(look, LOOK_MS).unref();
}

function findWaitpid(): ((pid: number, status: null, options: number) => number) | undefined {
  const waitpid = { args: [FFIType.i32, FFIType.ptr, FFIType.i32], returns: FFIType.i32 } as const;
  for (const library of C_LIBRARIES) {
    try {
      return dlopen(library, { waitpid }).symbols.waitpid;
    } catch (error) {
      debug("kernel", `no ${library}`, error);
    }
  }
  return undefined;
}

function childrenOf(pid: number): number[] {
  const list = readProc(`/proc/${pid}/task/${pid}/children`) ?? "";
  return list.split(" ").filter(Boolean).map(Number);
}

/** proc(5): the state follows the command, which is in parentheses and may hold some itself. */
function isZombie(pid: number): boolean {
  const stat = readProc(`/proc/${pid}/stat`) ?? "";
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    debug("kernel", `${path} can't be read`, error);
    return undefined;
  }
}
