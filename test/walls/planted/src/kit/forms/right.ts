import type { Server } from 'node:http';
