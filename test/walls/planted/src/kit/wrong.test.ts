import '#model/planted';
import '../model/planted.ts';
import '../../bench/planted.ts';
