import { createServer } from 'node:http';
